"""Windows and films really are made, without a screen: SDL's dummy driver, and moviepy's own encoder."""

import importlib.util
import os

import gymnasium
import numpy as np
import pytest

import pleach

ID = "Pleach/GavelMulti-v1"


def ask_for(module):
    """Skips where a module is not there, and says so; in the stage of large libraries that is an error."""
    if importlib.util.find_spec(module) is None:
        if os.environ.get("PLEACH_CHECK_PYTHON_LIBS") == "1":
            pytest.fail(f"{module} is not installed")
        pytest.skip(f"{module} is not installed: pip install {module}")


def play(env, num_steps):
    """Steps of a heuristic, at most so many; how many the episode had."""
    for num in range(1, num_steps + 1):
        _, _, terminated, truncated, _ = env.step(env.unwrapped.expert_action("sjf"))
        if terminated or truncated:
            return num
    return num_steps


def test_a_window_shows_the_picture_of_each_step(monkeypatch):
    ask_for("pygame")
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    import pygame

    env = gymnasium.make(ID, num_jobs=20, render_mode="human")
    same = gymnasium.make(ID, num_jobs=20, render_mode="rgb_array")
    seen = []
    for one in (env, same):
        one.reset(seed=1)
    for _ in range(2):
        assert pygame.display.get_init() and pygame.display.get_surface().get_size() == (640, 360)
        shown = pygame.surfarray.array3d(pygame.display.get_surface()).swapaxes(0, 1)
        np.testing.assert_array_equal(shown, same.render())
        seen.append(shown)
        play(env, 15)
        play(same, 15)
    assert (seen[0] != seen[1]).any()
    env.close()
    assert not pygame.display.get_init()


def test_without_pygame_a_window_is_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr(pleach.PleachEnv, "metadata", {"render_modes": ["ansi", "rgb_array"], "render_fps": 20})
    with pytest.raises(gymnasium.error.DependencyNotInstalled, match="pip install pygame"):
        pleach.PleachEnv(ID, render_mode="human")


def test_a_film_has_a_picture_for_each_step(tmp_path):
    ask_for("moviepy")
    from moviepy import VideoFileClip

    env = gymnasium.make(ID, num_jobs=20, render_mode="rgb_array")
    folder = tmp_path / "films"
    env = gymnasium.wrappers.RecordVideo(env, str(folder), episode_trigger=lambda episode: True, disable_logger=True)
    env.reset(seed=1)
    num_steps = play(env, 10_000)
    env.close()
    films = sorted(folder.glob("*.mp4"))
    assert [film.name for film in films] == ["rl-video-episode-0.mp4"]
    with VideoFileClip(str(films[0])) as film:
        assert film.size == [640, 360] and film.fps == 20
        # The first picture is that of the reset.
        assert abs(film.n_frames - (num_steps + 1)) <= 1 and num_steps > 10
        last = film.get_frame(film.duration - 0.05)
    assert len(np.unique((last // 32).reshape(-1, 3), axis=0)) > 3


def test_a_schedule_is_drawn_with_its_nodes_types_and_hours():
    ask_for("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    found = pleach.simulate(pleach.workload(ID, num_jobs=12, seed=1), "sjf-best-type")
    axes = found.gantt()
    assert axes.get_xlabel() == "simulated time, h" and axes.get_ylabel() == "108 GPUs by type and node"
    labels = [label.get_text() for label in axes.get_yticklabels()]
    assert labels[0] == "K80, node 0" and labels[9] == "P100, node 9" and labels[26] == "V100, node 26" and len(labels) == 27
    # As many GPU hours as the record has.
    drawn_h = sum(box.width for bars in axes.collections for box in (path.get_extents() for path in bars.get_paths()))
    record_h = sum((found.segments["to_s"] - found.segments["from_s"]) * found.segments["num_gpus"]) / 3600
    assert drawn_h == pytest.approx(record_h)
    assert found.gantt(axes) is axes


def test_shares_of_a_gpu_lie_beside_each_other():
    ask_for("matplotlib")
    import matplotlib

    matplotlib.use("Agg")
    from pleach import gantt

    cluster = {"node_groups": [{"count": 2, "gpus_per_node": 2, "gpu_type": "A100"}]}
    segments = {"job_id": ["a", "b", "c"], "nodes": ["1:0", "1:0", "0-1:0-1"], "gpu_milli": [500, 500, 1000], "from_s": [0.0, 0.0, 7200.0], "to_s": [3600.0, 7200.0, 10800.0]}
    axes = gantt.draw(segments, cluster)
    boxes = [path.get_extents() for bars in axes.collections for path in bars.get_paths()]
    assert [(box.x0, box.x1, box.y0) for box in boxes[:2]] == [(0.0, 1.0, 2.0), (0.0, 2.0, 2.5)]
    assert [box.y0 for box in boxes[2:]] == [0.0, 1.0, 2.0, 3.0] and {box.x1 for box in boxes[2:]} == {3.0}
