"""What calls of a model take in tokens, where the service counts them and where it does not."""

from dataclasses import dataclass, field

from rankbeam.transforms.records.answers import CHARACTERS_PER_TOKEN, estimated_tokens
from rankbeam.transforms.records.calls.reply import Tokens


@dataclass
class Charges:
    """Counts the tokens of a connection's calls; what a service does not count costs as much as what it does.

    Attributes:
        service: how warnings name it.
        warnings: what users should see.
    """

    service: str
    warnings: list[str] = field(default_factory=list)
    _are_estimated: bool = False

    def of(self, counted: Tokens, asked: str, said: str = "") -> Tokens:
        """The tokens of a call.

        Args:
            counted: by the service; zero where it counts none.
            asked: the texts of the request.
            said: the text of the answer.

        >>> Charges("m").of(Tokens(7, 0, 2), "eight ch"), Charges("m").of(Tokens(), "eight ch", "four")
        (Tokens(input=7, cached=0, output=2), Tokens(input=2, cached=0, output=1))
        """
        if counted.total:
            return counted
        if not self._are_estimated:
            self._are_estimated = True
            self.warnings.append(
                f"{self.service} does not say how many tokens its calls take: they, and what they cost, are "
                f"estimated, at {CHARACTERS_PER_TOKEN} characters a token"
            )
        return Tokens(estimated_tokens(asked), 0, estimated_tokens(said))
