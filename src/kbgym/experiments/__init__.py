"""Experiments: training runs, arms and exams over several seeds, in this process or on Ray."""
