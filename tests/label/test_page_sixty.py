"""An afternoon in small: sixty digits by keyboard, and the store has exactly what was pressed."""

from tests.browser import needs_browser
from tests.label.person import DIGITS, Person, Server, stored, wait_for, write_digits

pytestmark = needs_browser


def test_sixty_digits_through_two_trainings_a_reload_and_a_kill(tmp_path, context):
    truth = write_digits(tmp_path / "digits")
    options = ("--data", str(tmp_path / "digits"), "--classes", ",".join(DIGITS))
    server = Server(tmp_path / "project", *options, "--batch", "20", "--encoder", "none")
    with server:
        ada = Person(context, server.url).arrive()
        for done in range(60):
            if done == 8:  # a slip of the finger, and its correction
                ada.answer("3" if truth[ada.item()] != "3" else "5")
                ada.undo()
            if done == 14:
                ada.skip()
            if done == 22:
                ada.skip()
                ada.undo()  # a skip can be taken back too
            if done == 30:
                ada.all_saved()
                ada.page.reload()
            if done == 45:
                wait_for(lambda: server.state()["model"]["version"] >= 1)
                server.kill()
                for _ in range(3):  # what is in hand can be answered with the server dead
                    ada.answer(truth[ada.item()])
                ada.page.wait_for_selector("#trouble:not([hidden])")
                assert "not saved yet" in ada.text("#saving")
                server.start()
            ada.answer(truth[ada.item()])
        ada.all_saved()
        wait_for(lambda: server.state()["model"]["version"] >= 2)
        ada.until("Number(document.querySelector('#version').textContent.split(' ')[1]) >= 2")
        assert server.state()["mine"]["answers"] == 63
        ada.says("#answered", "63 of 300")
    assert stored(server.project) == ada.acts
    refused = "Failed to load resource: net::ERR_"  # while it was dead
    assert [said for said in ada.seen if refused not in said] == []
