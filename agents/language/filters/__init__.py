"""What is wrong with a message or a conversation, and what follows from it.

::

    texts         words and sentences of messages
    messages      the filters: of one message (empty, too_short, too_long, word_loop, list, other_speaker, prompt_echo,
                  self_disclosure, early_exit), and of a message in view of those before it (repeated_sentence,
                  repeated_block, same_message)
    settings      FilterSettings (thresholds), Policy (what follows from each filter), the papers' policies
    policies      judge_turn, judge_conversation

A filter is a pure function of texts and a threshold; what it returns says what it found. It knows nothing of who is
filtered. That is the policy's part: it says for each filter whether the turn is sampled again (``resample_turn``), the
whole conversation is (``resample_conversation``), or the finding is only noted (``flag``).

How a conversation goes through them:

1. an agent that is set so cuts its reply to a drawn length itself (:mod:`agents.language.truncation`);
2. :func:`~agents.language.filters.policies.judge_turn` judges it in view of the messages so far. Each judgement is a
   :class:`agents.contract.Verdict` too (``judgement.verdict()``): a turn to be sampled again is the next attempt at the
   turn, a conversation to be sampled again ends the attempt at the conversation;
3. when the last message is said, or none is to come,
   :func:`~agents.language.filters.policies.judge_conversation` judges the whole: the same findings, one judgement for
   each filter, and whether messages are missing. It is also what measures and flags people's conversations and
   imported ones.
"""
