"""Experiments: trainings, arms and exams over several seeds, here or on Ray."""
