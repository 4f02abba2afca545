"""api.py - headers are the manual: every public function answers the same questions."""
import re

from lintlib import Finding, rule


def declarations(f):
    """(comment text or "", line, tokens of the declarator) of each public function of a header:
    marked BLITZ_API, or static inline with a public name. Declarations that follow each other
    without a blank line share the comment above the first."""
    tokens, comment, ended, i = f.tokens, "", -1, 0
    while i < len(tokens):
        t = tokens[i]
        if t.kind == "comment":
            comment, ended = t.text, t.end_line
        elif t.text == "BLITZ_API" or t.text == "static":
            j = i
            while j < len(tokens) and tokens[j].text not in (";", "{", "#"):
                j += 1
            words = [x for x in tokens[i:j] if x.kind != "comment"]
            if not (i and tokens[i - 1].text == "define"):
                yield comment if ended in (t.line - 1, t.line) else "", t.line, words
            ended, i = tokens[min(j, len(tokens) - 1)].end_line, j
            if j < len(tokens) and tokens[j].text == "{":
                i = skip_body(tokens, j)
                ended = tokens[min(i, len(tokens) - 1)].end_line
        i += 1


def skip_body(tokens, i):
    depth = 0
    while i < len(tokens):
        depth += {"{": 1, "}": -1}.get(tokens[i].text, 0)
        if depth == 0:
            return i
        i += 1
    return i


def function(words):
    """(name, tokens of the return type, tokens of the parameters), or None for an object."""
    for i, t in enumerate(words):
        if t.text == "(" and i and words[i - 1].kind == "ident" and words[i - 1].text.startswith("blitz_"):
            kept = [w.text for w in words[:i - 1] if not w.text.startswith("BLITZ_")]
            return words[i - 1].text, kept, [w.text for w in words[i:]]
    return None


@rule("api-comment", "every public function says Suspends:, Returns: and Owns: in its comment")
def api_comment(tree):
    for f in tree.c_files("include/"):
        for comment, line, words in declarations(f):
            found = function(words)
            if found is None or found[0].endswith("_"):
                continue  # an object, or an inline helper that users do not call
            name, result, params = found
            result = [w for w in result if w not in ("static", "inline", "extern", "const")]
            marked = any(w.text == "BLITZ_SUSPENDS" for w in words)
            yield from answers(f, line, name, comment, result, params, marked)


def answers(f, line, name, comment, result, params, marked):
    if not comment:
        yield Finding(f.path, line, f"{name} has no comment: say what it does, then Owns:, Suspends:, Returns:")
        return
    suspends = re.search(r"Suspends:\s*(\w+)", comment)
    if not suspends:
        yield Finding(f.path, line, f"{name} does not say `Suspends:` (never, or until what, and where it may be called)")
    elif (suspends.group(1) == "never") == marked:
        yield Finding(f.path, line, f"{name}: `Suspends:` and the mark BLITZ_SUSPENDS disagree")
    if result != ["void"] and "Returns:" not in comment:
        yield Finding(f.path, line, f"{name} does not say `Returns:`")
    if ("*" in params or "*" in result) and "Owns:" not in comment:
        yield Finding(f.path, line, f"{name} passes a pointer and does not say `Owns:` (copies, borrows until, takes, shares)")
