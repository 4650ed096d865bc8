"""kbgym's passes inside other people's frameworks: evaluation and reinforcement learning."""
