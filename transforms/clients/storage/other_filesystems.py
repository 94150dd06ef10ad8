"""Errors of Beam's filesystems other than local files and Cloud Storage, and advice about them."""

_SCHEMES = ("gs", "s3", "hdfs")  # known without asking Beam
_REMEDIES = (
    ("boto3", "run pip install 'apache-beam[aws]'"),
    ("import hdfs", "run pip install 'apache-beam[hadoop]'"),
    ("hdfs_", "give Beam's options --hdfs_host, --hdfs_port and --hdfs_user"),
)


def errors(path: str) -> tuple[type[Exception], ...]:
    if "://" not in path:
        return ()
    from apache_beam.io.aws.clients.s3.messages import S3ClientError

    return S3ClientError, ValueError  # Beam raises ValueError if a scheme has no filesystem, or options are missing


def problem_of_scheme(path: str) -> str | None:
    """The problem of a path on a filesystem that Beam does not have; None for others.

    >>> problem_of_scheme("https://host/out")
    'no filesystem begins with https://; name a local path, or one that begins with gs://, s3:// or hdfs://'
    >>> problem_of_scheme("s3://bucket/out"), problem_of_scheme("out")
    (None, None)
    """
    scheme, separator, _ = path.partition("://")
    if not separator or scheme in _SCHEMES or _is_registered(scheme):
        return None
    return f"no filesystem begins with {scheme}://; name a local path, or one that begins with gs://, s3:// or hdfs://"


def _is_registered(scheme: str) -> bool:
    from apache_beam.io.filesystems import FileSystem  # imports all installed filesystems

    return any(filesystem.scheme() == scheme for filesystem in FileSystem.get_all_subclasses())


def error_text(error: BaseException, path: str) -> str:
    """An error of a path's filesystem, with advice, in one line."""
    if (problem := problem_of_scheme(path)) is not None:
        return problem
    message = (isinstance(error, OSError) and error.strerror) or " ".join(str(error).split())
    remedy = next((text for words, text in _REMEDIES if words in message), None) if "://" in path else None
    return message if remedy is None else f"{message}; {remedy}"
