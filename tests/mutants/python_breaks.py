# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Breaks of Python code, one of each: cosmic-ray's operators, and one that leaves a statement out."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple

import parso
from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.operators.provider import OperatorProvider

# By what they break, so that numbers, of which there are many, do not crowd out the rest. Of the replacements of a
# comparison or of an arithmetic operator only those that somebody could write by mistake.
NAMES: Dict[str, str] = {
    "condition": "AddNot ReplaceUnaryOperator_Delete_Not",
    "and, or": "ReplaceAndWithOr ReplaceOrWithAnd",
    "comparison": """
        ReplaceComparisonOperator_Eq_NotEq ReplaceComparisonOperator_NotEq_Eq
        ReplaceComparisonOperator_Is_IsNot ReplaceComparisonOperator_IsNot_Is
        ReplaceComparisonOperator_Lt_LtE ReplaceComparisonOperator_LtE_Lt
        ReplaceComparisonOperator_Gt_GtE ReplaceComparisonOperator_GtE_Gt
        ReplaceComparisonOperator_Lt_GtE ReplaceComparisonOperator_Gt_LtE""",
    "arithmetic": """
        ReplaceBinaryOperator_Add_Sub ReplaceBinaryOperator_Sub_Add
        ReplaceBinaryOperator_Mul_Div ReplaceBinaryOperator_Div_Mul ReplaceBinaryOperator_FloorDiv_Mul
        ReplaceBinaryOperator_BitOr_BitAnd ReplaceBinaryOperator_BitAnd_BitOr ReplaceUnaryOperator_Delete_USub""",
    "constant": "ReplaceTrueWithFalse ReplaceFalseWithTrue NumberReplacer",
    "flow": "ZeroIterationForLoop ReplaceBreakWithContinue ReplaceContinueWithBreak ExceptionReplacer RemoveDecorator",
}


class DropStatement(Operator):
    """Leaves out a call whose result nobody wants, a return or a raise."""

    def mutation_positions(self, node: Any) -> Any:
        if node.type == "simple_stmt" and _is_dropped(node.children[0]):
            yield node.start_pos, node.end_pos

    def mutate(self, node: Any, index: int) -> Any:
        node.children[0] = parso.parse(node.get_first_leaf().prefix + "pass")
        return node

    @classmethod
    def examples(cls) -> Any:
        return (
            Example("os.fsync(file)\n", "pass\n"),
            Example("if x:\n    return 1\n", "if x:\n    pass\n"),
        )


def _is_dropped(statement: Any) -> bool:
    if statement.type in ("return_stmt", "raise_stmt"):
        return bool(statement.children[-1].get_code().strip() != "None")
    return statement.type in ("atom_expr", "power") and bool(statement.children[-1].get_code().startswith("("))


def operators() -> Dict[str, List[Operator]]:
    """Return the operators by what they break."""
    known = OperatorProvider()
    return {
        **{kind: [known[name]() for name in names.split()] for kind, names in NAMES.items()},
        "statement": [DropStatement()],
    }


class Break(NamedTuple):
    """One place at which an operator can break a file."""

    operator: Operator
    occurrence: int
    line: int


def breaks_of(code: str) -> Dict[str, List[Break]]:
    """Return the breaks of a file, by what they break; nothing where there is none of a kind."""
    nodes = list(ast_nodes(get_ast(code)))
    found: Dict[str, List[Break]] = {}
    for kind, each in operators().items():
        for operator in each:
            lines = [start[0] for node in nodes for start, _end in operator.mutation_positions(node)]
            found.setdefault(kind, []).extend(Break(operator, at, line) for at, line in enumerate(lines))
    return {kind: breaks for kind, breaks in found.items() if breaks}


def broken(code: str, one: Break) -> str:
    """Return a file with a break; as it is if that does not compile."""
    changed = mutate_code(code, one.operator, one.occurrence) or code
    try:
        compile(changed, "broken", "exec")
    except SyntaxError:
        return code
    return changed
