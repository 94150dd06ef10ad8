"""Write the tables of a run."""
