#!/usr/bin/env python3
"""Makes the checkpoints and reference outputs under tests/data/hf (see README.md beside this file).

Made with Python 3.11 on the CPU and the versions in hf_reference/versions.py, which are checked. What the cases are
stands in hf_reference/decoders.py, encoders.py and formulas.py.

The models are small and random, of the families' own classes. A model runs as a whole (its own masks, rotary embedding
and cache, eager attention, float32); hooks record what goes into each attention module and what comes out. Nothing of
attention is computed here, but for the families of formulas.py, which transformers does not have. A second run of the
same classes with every float32 of theirs replaced by float64 says how far the float32 outputs are from exact ones:
that is printed, as the table of the README.

Usage: make_hf_reference.py [FOLDER [NAME...]]   (default: hf beside this file, everything)
"""

import pathlib
import shutil
import sys

import torch

from hf_reference import decoders, encoders, formulas, run, versions


def main():
    versions.check()
    torch.set_num_threads(1)
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "hf")
    cases = {**decoders.CASES, **encoders.CASES, **formulas.CASES, **decoders.LATER}
    for seed, (name, case) in enumerate(cases.items()):
        if len(sys.argv) > 2 and name not in sys.argv[2:]:
            continue
        shutil.rmtree(root / name, ignore_errors=True)
        run.make(root, name, case, seed)


if __name__ == "__main__":
    main()
