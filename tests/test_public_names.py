"""The public surface: every promised name is there, lazily, and importing kbgym imports nothing heavy."""

from __future__ import annotations

import subprocess
import sys

import kbgym


def test_every_public_name_can_be_used():
    for name in kbgym.__all__:
        assert getattr(kbgym, name) is not None
    assert sorted(kbgym.__all__) == sorted(kbgym._MODULE_OF) == sorted(dir(kbgym))


def test_importing_kbgym_is_free():
    code = "import sys, kbgym; sys.exit(any(m in sys.modules for m in ('numpy', 'onnxruntime', 'click', 'rich')))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_help_loads_no_verb():
    code = (
        "import sys\nfrom kbgym.cli.main import run\n"
        "try:\n    run(['--help'])\nexcept SystemExit:\n    pass\n"
        "sys.exit('onnxruntime' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, capture_output=True).returncode == 0
