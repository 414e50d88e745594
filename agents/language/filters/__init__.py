"""What is wrong with a message or a conversation, and what follows from it.

::

    texts         words and sentences of messages
    messages      the filters: pure functions of texts and thresholds
    policies      FilterSettings (thresholds), Policy (what follows from each filter), judge_turn, judge_conversation

A turn is judged in view of the messages so far, and sampled again if the policy says so; a whole conversation when its
last message is said, or none is to come. People's conversations and imported ones are measured by the same functions.
"""
