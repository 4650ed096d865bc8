"""Settings for every test; being here, it also lets tests in subfolders import the helpers beside it."""

from hypothesis import settings

# No test may depend on how fast a machine is.
settings.register_profile("kbgym", deadline=None)
settings.load_profile("kbgym")
