"""A world, a run or a store as one opened thing, for Python, the command line, the server and the viewer alike."""

from kbgym.artefact.making import beginning, import_corpus, teach, train, trainer_for
from kbgym.artefact.opened import Artefact, Exam, open

__all__ = ["Artefact", "Exam", "beginning", "import_corpus", "open", "teach", "train", "trainer_for"]
