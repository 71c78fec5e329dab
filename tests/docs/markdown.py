# SPDX-License-Identifier: Apache-2.0
"""What the tests of the documents read: which pages there are, and their fenced blocks."""
import os
import re

FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```[ \t]*$", re.MULTILINE | re.DOTALL)


class Block:
    def __init__(self, line, info, content):
        self.line = line
        self.words = info.split()
        self.content = content

    @property
    def language(self):
        return self.words[0] if self.words else ""

    @property
    def file(self):
        """The word with a point in it: the name under which the block is kept for the blocks after it."""
        return next((word for word in self.words[1:] if "." in word), None)

    @property
    def marks(self):
        return [word for word in self.words[1:] if "." not in word]


def pages(root):
    """README.md, docs/**/*.md and bindings/*/README.md, relative to the root."""
    yield "README.md"
    for folder, _, names in sorted(os.walk(os.path.join(root, "docs"))):
        for name in sorted(names):
            if name.endswith(".md"):
                yield os.path.relpath(os.path.join(folder, name), root)
    for name in sorted(os.listdir(os.path.join(root, "bindings"))):
        path = os.path.join("bindings", name, "README.md")
        if os.path.exists(os.path.join(root, path)):
            yield path


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as file:
        return file.read()


def blocks(text):
    return [Block(text.count("\n", 0, found.start()) + 1, found.group(1).strip(), found.group(2))
            for found in FENCE.finditer(text)]


def without_blocks(text):
    return FENCE.sub("", text)


def transcript(content):
    """(command, expected output) of each "$ " line; a command goes on after a backslash at the end of a line."""
    steps = []
    lines = content.splitlines()
    at = 0
    while at < len(lines):
        if not lines[at].startswith("$ "):
            raise ValueError("output before the first command: " + lines[at])
        command = lines[at][2:]
        while command.endswith("\\") and at + 1 < len(lines):
            at += 1
            command += "\n" + lines[at]
        at += 1
        output = []
        while at < len(lines) and not lines[at].startswith("$ "):
            output.append(lines[at])
            at += 1
        steps.append((command, output))
    if not steps:
        raise ValueError("a transcript without a command")
    return steps


def same_output(expected, found):
    """Line by line; an expected line "..." stands for any lines."""
    pattern = "".join(r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line) + r"\n" for line in expected)
    return re.fullmatch(pattern, "".join(line + "\n" for line in found)) is not None
