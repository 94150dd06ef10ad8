"""Models, which answer prompts behind a network or in process."""
