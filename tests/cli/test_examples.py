"""`kbgym examples`, and `kbgym doctor` of an installation."""

from __future__ import annotations

import json

import pytest

from kbgym.cli import doctor
from kbgym.cli.worlds import EXAMPLES
from kbgym.errors import Missing


def test_every_example_is_listed_copied_and_imported(kbgym, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert json.loads(kbgym("examples", "--json")[1])["examples"] == list(EXAMPLES)
    for name in EXAMPLES:
        code, text, error = kbgym("examples", "copy", name, "--json")
        assert code == 0, error
        found = json.loads(text)
        monkeypatch.chdir(tmp_path / name)
        documents, questions = (found[key].removeprefix(f"{name}/") for key in ("documents", "questions"))
        assert kbgym("init", documents, "--questions", questions, "--quiet")[0] == 0
        monkeypatch.chdir(tmp_path)
        assert kbgym("examples", "copy", name)[0] == 2, "an existing folder is never written to"


@pytest.mark.parametrize("arguments", [("copy",), ("copy", "nothing"), ("move", "harbour")])
def test_other_words_are_bad_input(kbgym, arguments):
    assert kbgym("examples", *arguments)[0] == 2


REQUIRED = [
    "click>=8",
    'kbgym[inner]; extra == "documents"',
    'no-such-package>=1; extra == "inner"',
    'msgspec>=0.1; extra == "inner"',
    "other-missing[x]>=2; extra == 'serve'",
]


def test_missing_packages_are_those_of_an_extra_that_are_not_installed(monkeypatch):
    monkeypatch.setattr(doctor, "requires", lambda name: REQUIRED)
    found = {extra: doctor.missing_packages(extra) for extra in ("documents", "serve", "ray")}
    assert found == {"documents": ["no-such-package"], "serve": ["other-missing"], "ray": []}


def test_doctor_fails_only_without_the_model(kbgym, monkeypatch):
    monkeypatch.setattr(doctor, "requires", lambda name: REQUIRED)
    code, text, _ = kbgym("doctor", "--json")
    assert code == 0 and json.loads(text)["extras"]["serve"] == ["other-missing"]

    def gone(model, cache):
        raise Missing("the model is not here; run `pip install it`.")

    monkeypatch.setattr(doctor, "find", gone)
    code, text, _ = kbgym("doctor")
    assert code == 1 and "pip install it" in text and "kbgym[serve]" in text
