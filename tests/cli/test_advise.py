"""`askance advise`: what `askance.advise` says, on the command line."""

import json

from askance import advise, strategies


def test_the_command_says_the_same(askance):
    code, out, err = askance("advise", "--model", "encoder", "--labels", "0")
    assert (code, err) == (0, "")
    assert out.replace("\n", " ").strip() == str(advise("encoder", labels=0))
    said = json.loads(askance("advise", "--pool", "50", "--json")[1])
    assert said["strategy"] == strategies.default().name
    assert len(said["sentences"]) == 3
    assert askance("advise", "--model", "forest")[0] == 2
