-- Make an exclusive grant a shared or counted one. Answers how many rows are changed.

/* rowlock:downgrade */
downgrade {name} {owner} {token} {permits}
