"""The field of an experiment that takes a path, a table of BigQuery or, as a mapping, a query.

This is not in `names`, which all readers of files import, because importing pydantic takes a tenth of a second.
"""

from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, PlainSerializer, ValidationError

from rankbeam.transforms.clients.bigquery.names import DatasetName, Scalar, TableSource, is_table
from rankbeam.transforms.records.errors import InputError, did_you_mean
from rankbeam.transforms.records.wrong_values import in_words


class QueryModel(BaseModel):
    """The mapping that an experiment may have instead of a path.

    Attributes:
        query: GoogleSQL, one SELECT; its columns are named as those of a table are.
        project: the project that runs and pays for the query.
        parameters: values for `@name` in the query: texts, whole numbers, fractions, truth values, or lists of one of
            these. They are sent beside the query and never become part of it.
    """

    model_config = ConfigDict(extra="forbid", strict=True)

    query: Annotated[str, Field(min_length=1)]
    project: str
    parameters: dict[str, Scalar | list[Scalar]] = Field(default_factory=dict)


def _path_of(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    try:
        model = QueryModel.model_validate(value)
        DatasetName.parse(f"{model.project}.any")
    except ValidationError as error:
        raise ValueError("; ".join(_error_text(dict(detail)) for detail in error.errors())) from None
    except InputError as error:
        raise ValueError(f"{value['project']!r} is not a Google Cloud project") from error
    for name, argument in model.parameters.items():
        if isinstance(argument, list) and len({type(item) for item in argument}) != 1:
            raise ValueError(f"parameter {name!r} is a list, and needs values of one type, at least one")
    return TableSource(project=model.project, query=model.query, parameters=model.parameters).path


def _error_text(error: dict[str, Any]) -> str:
    place = ".".join(str(part) for part in error["loc"][:2])
    if error["type"] == "extra_forbidden":
        return f"a query has no {place!r}; {did_you_mean(place, QueryModel.model_fields)}"
    if error["type"] == "missing":
        return f"a query needs {place!r}"
    return f"{place}: {in_words(error)}"


def _serialize_path(path: str) -> str | dict[str, Any]:
    if not is_table(path) or (source := TableSource.parse(path)).table is not None:
        return path
    fields: dict[str, Any] = {"query": source.query, "project": source.project}
    return fields | ({"parameters": source.parameters} if source.parameters else {})


Location = Annotated[str, BeforeValidator(_path_of), PlainSerializer(_serialize_path), Field(min_length=1)]
"""A field that takes a path or, as a mapping, a query; it holds, either way, one text."""
