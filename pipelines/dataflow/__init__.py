"""Jobs on Dataflow: their options, their package, how they are submitted, followed and shown.

package  ─► default options of a job, and its wheel
uploads  ─► refuses files that workers cannot read       launch  ─► submits a job and waits for its end
record   ─► the record of a job beside its output        service ─► state and counters of a job from Dataflow
"""
