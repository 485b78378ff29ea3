"""How make_hf_reference.py makes its data: cases (decoders, encoders, formulas) and what is done with each (run)."""
