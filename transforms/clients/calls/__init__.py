"""The fan-out: paced attempts under quota, each lane on one worker."""
