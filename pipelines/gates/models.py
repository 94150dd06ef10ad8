"""The schema of `gates:`, in an experiment or in a file of its own."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

FAILURE_RATE = "failure_rate"
SENTINELS = "sentinels"
MONITOR = "monitor"
DIFFERENCES = ("difference", "difference_low", "difference_high")
Limit = Annotated[float, Field(allow_inf_nan=False)]
Word = Annotated[str, Field(min_length=1)]


class GateModel(BaseModel):
    """One item of `gates:`, a threshold for results.

    Attributes:
        metric: name of a metric, as under `metrics:`. For `failure_rate` it can be omitted, and the highest failure
            rate of any metric is used.
        value: value to compare with the limit. `low` and `high` are the ends of the mean's interval, `difference_low`
            and `difference_high` those of the difference from the baseline; `failure_rate` is the share of queries that
            failed. `monitor` is the change since the baseline run that `monitor:` names, night after night: with
            `at_least: -0.02` the gate is missed if a whole interval is below -0.02.
        at_least: lowest value that passes. Set either `at_least` or `at_most`.
        at_most: highest value that passes.
        configuration: name of a configuration, or the part of the name before the grid's values to match all of them.
            By default the gate applies to all configurations, or, for differences, to all but the baseline.
        slice: slice to check: "all" queries, one slice ("intent=how_to"), or an attribute name for each of its values.
        if_missing: outcome of a comparison with another run that lacks the configuration, metric or slice. With "miss"
            the gate is missed; with "skip" it is shown as new and passes.
        judge: the value "sentinels" limits the share of known items that the judge gets right, in the step with the
            lowest share. Such a gate has no metric.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    metric: Word | None = None
    value: Literal[
        "mean", "low", "high", "difference", "difference_low", "difference_high", "failure_rate", "monitor"
    ] = "mean"
    at_least: Limit | None = None
    at_most: Limit | None = None
    configuration: Word | None = None
    slice: Word = "all"
    if_missing: Literal["miss", "skip"] = "miss"
    judge: Literal["sentinels"] | None = None

    @model_validator(mode="after")
    def _whole(self) -> "GateModel":
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("has one limit, at_least or at_most")
        if "if_missing" in self.model_fields_set and self.value not in DIFFERENCES:
            raise ValueError("has if_missing, which only applies to differences from another run")
        if self.judge is not None:
            if self.model_fields_set - {"judge", "at_least", "at_most"}:
                raise ValueError("is a gate on the judge, which takes a limit and no other key")
        elif self.value != FAILURE_RATE and self.metric is None:
            raise ValueError(f"needs a metric, as its value is {self.value}")
        return self


class GatesModel(BaseModel):
    """A file with gates; other keys, such as the rest of an experiment, are ignored."""

    gates: list[GateModel] = Field(default_factory=list)
