"""The fan-out: paced attempts under quota, on one worker a lane."""
