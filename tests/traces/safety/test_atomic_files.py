"""Files and folders appear whole or not at all."""

import os
import threading

import pytest

from hopmap.traces.safety.atomic_files import replacing, replacing_folder


def test_a_file_appears_whole(tmp_path):
    with replacing(tmp_path / "x.csv") as partial:
        partial.write_text("new")
        assert not (tmp_path / "x.csv").exists()
        assert partial.suffix == ".csv"
    assert [p.name for p in tmp_path.iterdir()] == ["x.csv"]


@pytest.mark.parametrize("interruption", [ValueError, KeyboardInterrupt])
def test_an_interrupted_file_leaves_the_old_one(tmp_path, interruption):
    (tmp_path / "x").write_text("old")
    with pytest.raises(interruption), replacing(tmp_path / "x") as partial:
        partial.write_text("half")
        raise interruption
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_pipes_and_links_stay_what_they_are(tmp_path):
    pipe, link, file = tmp_path / "pipe", tmp_path / "link", tmp_path / "file"
    os.mkfifo(pipe)
    heard = []
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text()))
    reader.start()
    with replacing(pipe) as partial:
        partial.write_text("through")
    reader.join()
    assert heard == ["through"] and pipe.is_fifo()
    file.write_text("old and longer")
    link.symlink_to(file)
    with replacing(link) as partial:
        partial.write_text("new")
    assert link.is_symlink() and file.read_text() == "new"
    with pytest.raises(ValueError), replacing(link) as partial:  # as whole as any other
        partial.write_text("half")
        raise ValueError
    assert file.read_text() == "new"
    with pytest.raises(OSError), replacing(link) as partial:
        raise OSError(28, "No space left on device", 7)  # of a number that `open` was handed
    assert sorted(tmp_path.iterdir()) == [file, link, pipe]


def test_a_folder_replaces_the_old_one(tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "old").touch()
    with replacing_folder(tmp_path / "d") as partial:
        (partial / "new").touch()
    assert [p.name for p in tmp_path.iterdir()] == ["d"]
    assert [p.name for p in (tmp_path / "d").iterdir()] == ["new"]


def test_an_interrupted_folder_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), replacing_folder(tmp_path / "d") as partial:
        (partial / "half").touch()
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("replace", [replacing, replacing_folder])
def test_an_unwritable_place_is_an_os_error_that_names_what_was_asked_for(tmp_path, replace):
    with pytest.raises(OSError) as caught, replace(tmp_path / "none" / "x"):
        pass
    assert caught.value.filename == str(tmp_path / "none" / "x")


def test_an_error_of_writing_names_what_was_asked_for_and_one_of_another_file_that_file(tmp_path):
    target = tmp_path / "x.csv"
    for raised, named in (
        (OSError(28, "No space left on device"), target),
        (OSError(2, "No such file", "input.csv"), "input.csv"),
    ):
        with pytest.raises(OSError) as caught, replacing(target):
            raise raised
        assert caught.value.filename == str(named)
