"""Chat templates of each kind that published models have, in this project's words. Their marks are special tokens of
``tiny_language.llama``."""

_TURNS = "{{% for message in {messages} %}}<|start|>{{{{ message['role'] }}}}<|end|>{{{{ message['content'] }}}}<|eot|>"
_REST = "{% endfor %}{% if add_generation_prompt %}<|start|>assistant<|end|>{% endif %}"
_ALTERNATE = (
    "{% for message in rest %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate') }}{% endif %}{% endfor %}"
)
_APART = (
    "{% set system = '' %}{% set rest = messages %}{% if messages[0]['role'] == 'system' %}"
    "{% set system = messages[0]['content'] %}{% set rest = messages[1:] %}{% endif %}"
)

PLAIN = _TURNS.format(messages="messages") + _REST
# Earlier answers, or all but the last question, are left out; or the chat stands the other way round.
WITHOUT_ANSWERS = _TURNS.format(messages="messages | rejectattr('role', 'equalto', 'assistant')") + _REST
THE_LAST_ALONE = _APART + "{{ system }}" + _TURNS.format(messages="rest[-1:]") + _REST
BACKWARDS = _TURNS.format(messages="messages | reverse") + _REST
# What stands before </think> in an earlier answer is taken for a thought.
WITHOUT_EARLIER_THOUGHTS = PLAIN.replace(
    "{{ message['content'] }}",
    "{{ message['content'].split('</think>')[-1] if message['role'] == 'assistant' else message['content'] }}",
)
# The system text is written into the user's last message, and is lost where there is none.
INTO_THE_LAST = (
    _APART + _ALTERNATE + "{% for message in rest %}<|start|>"
    "{% if message['role'] == 'user' and loop.last and system %}{{ system }}\n\n{% endif %}"
    "{{ message['content'] }}<|eot|>{% endfor %}"
)
# It is written into the user's message if that is the first, and is lost where the assistant begins.
INTO_THE_FIRST = (
    _APART + "{% for message in rest %}<|start|>{{ message['role'] }}<|end|>"
    "{% if loop.first and message['role'] == 'user' and system %}{{ system }}\n{% endif %}"
    "{{ message['content'] }}<|eot|>" + _REST
)
# It is lost wherever it stands alone, and nobody but a user may begin.
INTO_THE_FIRST_BY_TURNS = INTO_THE_FIRST.replace(_APART, _APART + _ALTERNATE)
BY_TURNS = _APART + _ALTERNATE + "{{ system }}" + _TURNS.format(messages="rest") + _REST
WITHOUT_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('No system role') }}{% endif %}"
    "{% set rest = messages %}" + _ALTERNATE + PLAIN
)
WANTS_A_USER = (
    "{% if not messages | selectattr('role', 'equalto', 'user') | list %}{{ raise_exception('No user') }}{% endif %}"
    + PLAIN
)
WANTS_NO_ASSISTANT = (
    "{% if messages | selectattr('role', 'equalto', 'assistant') | list %}{{ raise_exception('No past') }}{% endif %}"
    + PLAIN
)
CHANGES_A_WORD = _APART + "{{ system | replace('boring', 'dull') }}" + _TURNS.format(messages="rest") + _REST
DROPS_ALL = _APART + "{% if system | length < 20 %}{{ system }}{% endif %}" + _TURNS.format(messages="rest") + _REST

DEFAULT = "{% if messages[0]['role'] != 'system' %}<|start|>system<|end|>You are Tiny.<|eot|>{% endif %}" + PLAIN
ASKS_FOR_THE_TIME = "Today is {{ strftime_now('%d %B %Y') }}.\n" + PLAIN
ASKS_WITHOUT_SYSTEM = (
    "{% if messages[0]['role'] != 'system' %}Today is {{ strftime_now('%Y-%m-%d') }}.{% endif %}" + PLAIN
)
TAKES_A_DATE = (
    "{% if date_string is not defined %}{% set date_string = strftime_now('%d %b %Y') %}{% endif %}"
    "Today Date: {{ date_string }}\n" + PLAIN
)

# How reasoning is switched off or on.
BY_REASONING = (
    "{% set reasoning = reasoning if reasoning is defined else true %}"
    + PLAIN
    + "<think>{% if not reasoning %}</think>{% endif %}"
)
BY_BUDGET = PLAIN + "{% if thinking_budget is defined and thinking_budget == 0 %}<think></think>{% endif %}"
BY_MODE = PLAIN + (
    "{% if thinking_mode is defined and thinking_mode == 'disabled' %}</think>"
    "{% elif thinking_mode is defined and thinking_mode == 'enabled' %}<think>{% endif %}"
)
BY_EFFORT = (
    "{% if reasoning_effort is defined and reasoning_effort not in ['low', 'high', 'no_think'] %}"
    "{{ raise_exception('unknown effort') }}{% endif %}"
    + PLAIN
    + "<think>{% if reasoning_effort is not defined or reasoning_effort == 'no_think' %}</think>{% endif %}"
)
BY_LEAST_EFFORT = PLAIN + "{% if reasoning_effort in ['low', 'minimal'] %}<think></think>{% endif %}"
OPENED_BY_ANY_EFFORT = PLAIN + "{% if reasoning_effort is defined %}<think>{% endif %}"
NAMES_THE_EFFORT = "Effort: {{ reasoning_effort if reasoning_effort is defined else 'medium' }}\n" + PLAIN
BY_THINKING = PLAIN + "{% if not enable_thinking %}<think></think>{% endif %}"

WANTS_FUNCTIONS = "{{ functions + '' }}" + PLAIN
WANTS_TOOLS = "{% for tool in tools %}{{ tool }}{% endfor %}" + PLAIN
