"""Integrations of kbgym's passes with frameworks for evaluation and reinforcement learning."""
