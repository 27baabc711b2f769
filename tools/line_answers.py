"""What the scripts share that `tandem` starts to ask something of them: requests and answers are JSON
objects, one a line, on stdin and stdout. The process ends when its stdin does.
"""

import json
import os
import signal
import sys


def open_answers():
    """The file for answers. What else is printed, from here on, goes to stderr."""
    # Ctrl-C reaches the asker, too, which tells of it.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    # Whatever else is printed must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def answer_lines(answers, answer_to):
    """Answers every line of stdin with answer_to(line). Returns the process's exit status."""
    for line in sys.stdin:
        answer = answer_to(line)
        try:
            print(json.dumps(answer), file=answers, flush=True)
        except BrokenPipeError:
            return 1  # the asker is gone, and with it whoever would read of it
    return 0
