"""Jobs on Dataflow: what is set for them, what they are made of, and how they are followed.

settings ─► what a job gets that its user does not name      package ─► the wheel that its workers install
uploads  ─► which files it could not read                    launch  ─► submit it, follow it to its end
record   ─► what is kept of it beside the output             service ─► what Dataflow says of it
"""
