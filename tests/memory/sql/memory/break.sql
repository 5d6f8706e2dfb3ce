-- End a grant by force, and raise the token of its name. Answers the row that is gone.

/* rowlock:break */
break {name} {token}
