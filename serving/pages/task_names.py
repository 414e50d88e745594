"""The tasks as pages name them."""

TASK_NAMES = {
    "color_estimation": "Colour estimation",
    "object_detection": "Object detection",
    "attention_prediction": "Attention prediction",
    "image_captioning": "Image captioning",
    "word_association": "Word association",
    "conversation": "Conversation",
    "judgement": "Judgement",
}
