#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write the outputs of a page's transcripts anew, from what the commands print now. Read the difference before you keep it.

    transcripts.py SOURCE-ROOT BUILD-ROOT PAGE...

Transcripts that leave out lines ("...") and still hold stay as they are.
"""
import os
import sys
import tempfile

import blocks
import markdown


def renew(tree, content):
    status = 0
    lines = []
    for command, expected in markdown.transcript(content):
        status, output = tree.run(["sh", "-c", "(exit %d)\n%s" % (status, command)])
        found = [line.rstrip() for line in output.splitlines()]
        lines.append("$ " + command)
        lines.extend(expected if markdown.same_output(expected, found) else found)
    return "".join(line + "\n" for line in lines)


def main():
    root, build = sys.argv[1:3]
    for name in sys.argv[3:]:
        text = markdown.read(root, name)
        with tempfile.TemporaryDirectory() as folder:
            tree = blocks.Tree(root, build)
            tree.enter(folder)
            for block in markdown.blocks(text):
                if block.language == "console":
                    text = text.replace(block.content, renew(tree, block.content), 1)
                elif block.language in ("json", "yaml"):
                    tree.keep(block)
        with open(os.path.join(root, name), "w", encoding="utf-8") as file:
            file.write(text)


main()
