"""What a word is and which words are near: vocabulary, rules of word association, vectors."""
