"""Nothing that a user does ends the interpreter, hangs it, or is cast in silence."""

import copy
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time

import gymnasium
import numpy as np
import pytest

import pleach

ID = "Pleach/Philly-v0"


def vector(num_envs=4, **settings):
    return gymnasium.make_vec(ID, num_envs=num_envs, vectorization_mode="vector_entry_point", num_jobs=20, **settings)


def lasts(observation):
    return np.array([np.flatnonzero(mask)[-1] for mask in observation["mask"]])


def rollout(envs):
    """The sum of what ten steps show."""
    observation, _ = envs.reset(seed=1)
    total = 0.0
    for _ in range(10):
        observation, *_ = envs.step(lasts(observation))
        total += float(observation["candidates"].sum())
    return total


def in_child(connection, envs):
    connection.send(rollout(envs))
    connection.close()


def result_of(method, envs):
    context = multiprocessing.get_context(method)
    ours, theirs = context.Pipe()
    child = context.Process(target=in_child, args=(theirs, envs))
    child.start()
    assert ours.poll(60), f"{method}: the child hangs"
    found = ours.recv()
    child.join(60)
    assert child.exitcode == 0
    return found


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_environments_step_in_children_also_after_their_pool_was_used(method):
    envs = vector(num_threads=2)
    expected = rollout(envs)
    assert result_of(method, envs) == expected
    assert rollout(envs) == expected


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gymnasiums_own_vectors_of_single_environments_step_alike(mode):
    own = gymnasium.make_vec(ID, num_envs=2, vectorization_mode=mode, num_jobs=20)
    ours = vector(2)
    observation, _ = own.reset(seed=1)
    seen, _ = ours.reset(seed=1)
    for _ in range(10):
        for name in seen:
            np.testing.assert_array_equal(observation[name], seen[name])
        actions = lasts(seen)
        observation, rewards, *_ = own.step(actions)
        seen, other, *_ = ours.step(actions)
        np.testing.assert_array_equal(rewards.astype(np.float32), other)
    own.close()


def test_a_copy_has_the_settings_and_begins_anew():
    envs = vector(max_steps=7)
    assert rollout(pickle.loads(pickle.dumps(envs))) == rollout(copy.deepcopy(envs)) == rollout(envs)


def test_an_episode_is_the_same_in_another_process():
    lines = "import sys; sys.path.insert(0, sys.argv[1]); import test_safety as t; print(repr(t.rollout(t.vector())))"
    folder = os.path.dirname(__file__)
    done = subprocess.run([sys.executable, "-c", lines, folder], capture_output=True, text=True, check=True)
    assert float(done.stdout) == rollout(vector(num_threads=1))


def test_resets_do_not_grow_the_memory():
    def resident():
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    if not os.path.exists("/proc/self/statm"):
        pytest.skip("no /proc here")
    env = pleach.PleachEnv(ID, num_jobs=2)
    num = int(os.environ.get("PLEACH_NUM_RESETS", "100000"))
    for seed in range(num // 10):
        env.reset(seed=seed)
    before = resident()
    for seed in range(num):
        env.reset(seed=seed)
    assert resident() - before < 2 << 20


def test_one_environment_steps_without_threads():
    if not os.path.exists("/proc/self/task"):
        pytest.skip("no /proc here")
    lines = f"""
import os, pleach
before = len(os.listdir("/proc/self/task"))
env, envs = pleach.PleachEnv({ID!r}, num_jobs=20), pleach.PleachVectorEnv({ID!r}, 1, num_jobs=20)
for one in (env, envs):
    one.reset(seed=1)
env.step(env.random_action()), envs.step(envs.random_actions()), pleach.load("sjf").score(env)
assert len(os.listdir("/proc/self/task")) == before, before
"""
    subprocess.run([sys.executable, "-c", lines], check=True)


def test_a_fault_of_ours_is_an_exception():
    with pytest.raises(RuntimeError, match="a fault of Pleach itself, please report it: for a test"):
        pleach._pleach.fault("for a test")


def test_actions_that_are_not_contiguous_are_copied_and_other_kinds_of_whole_numbers_taken():
    envs, others = vector(), vector()
    observation, _ = envs.reset(seed=1)
    others.reset(seed=1)
    wide = np.zeros(8, np.int64)
    wide[::2] = lasts(observation)
    first, *_ = envs.step(wide[::2])
    second, *_ = others.step(lasts(observation).astype(np.int16).tolist())
    np.testing.assert_array_equal(first["candidates"], second["candidates"])


def test_two_threads_that_step_one_environment_get_an_error_and_no_race():
    envs = vector(64)
    observation, _ = envs.reset(seed=1)
    errors = []

    def step():
        for _ in range(50):
            try:
                envs.step(lasts({"mask": envs.action_masks()}))
            except (RuntimeError, ValueError) as error:
                errors.append(str(error))

    threads = [threading.Thread(target=step) for _ in range(2)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert all("borrow" in text or "in use" in text or "admissible" in text for text in errors), errors[:3]


LONG = {
    "workload": "pleach.workload('philly-like', num_jobs=8_000_000, load=10)",
    "simulate": "pleach.simulate(pleach.workload('philly-like', num_jobs=1_000_000, load=1.2), 'sjf')",
    "evaluate": "pleach.evaluate(['sjf', 'srtf'], 'philly-like', num_jobs=100_000, seeds=20)",
    "distill": "pleach.distill('sjf', settings={'num_jobs': 2000}, rounds=20, episodes=50)",
    "callable": "pleach.evaluate({'mine': lambda seen: seen['mask'].astype('f4')}, 'philly-like', num_jobs=20_000)",
}


@pytest.mark.parametrize("what", LONG)
def test_control_c_ends_long_calls_within_a_second(what):
    # Again and again: however fast the machine is, the work is not over before it is interrupted.
    lines = f"import pleach\nprint('begun', flush=True)\ntry:\n    while True:\n        {LONG[what]}\nexcept KeyboardInterrupt:\n    print('heard', flush=True)"
    child = subprocess.Popen([sys.executable, "-c", lines], stdout=subprocess.PIPE, text=True)
    assert child.stdout.readline() == "begun\n"
    time.sleep(1.5)
    assert child.poll() is None, "the work was over before it could be interrupted"
    began = time.monotonic()
    child.send_signal(signal.SIGINT)
    assert child.stdout.readline() == "heard\n"
    took = time.monotonic() - began
    child.wait(30)
    # A second, and as much again for a machine that has other work.
    assert took < 2.0, f"{took:.2f} s"


def test_the_command_line_comes_with_the_package():
    program = os.path.join(os.path.dirname(sys.executable), "pleach")
    for command in ([program], [sys.executable, "-m", "pleach"]):
        done = subprocess.run([*command, "evaluate", "--policy", "sjf,fifo", "--workload", "philly-like", "--num-jobs", "20", "--seeds", "2"], capture_output=True, text=True)
        assert done.returncode == 0 and "sjf" in done.stdout, done.stderr
        assert subprocess.run([*command, "--version"], capture_output=True, text=True).stdout.startswith("pleach ")
        refused = subprocess.run([*command, "evaluate", "--policy", "sjff"], capture_output=True, text=True)
        assert refused.returncode == 2 and "Did you mean sjf?" in refused.stderr
