"""Play Wordle on a server of episodes with OpenEnv's client.

Start the server in another terminal, then run this file:

rlsuite serve Wordle-v0 --port 8000
python examples/play_openenv.py http://127.0.0.1:8000
"""

import sys

from openenv.core import GenericEnvClient

with GenericEnvClient(base_url=sys.argv[1]).sync() as env:
    result = env.reset(seed=7)
    print(result.observation["system"], result.observation["text"], sep="\n\n")
    for word in ("crane", "moist", "bulky", "fudge", "whale", "given"):
        if not result.done:
            result = env.step({"text": f"I guess <action>{word}</action>"})
            print(f"{word}: reward {result.reward}\n{result.observation['text']}")
    print("score:", result.observation["score"])
