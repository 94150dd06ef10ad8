"""The steps of the judge, one file each, with their prompts and known items beside them."""
