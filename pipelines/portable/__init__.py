"""Runs on engines behind Beam's Job API: Flink, Prism, Spark, and any other job server.

`job_server` starts Beam's job server or connects to one, `launch` submits and follows a job, `job` describes it, and
`engine` speaks to Flink's own API, which knows a job longer than the job server does.
"""
