DROP TABLE tombstones, page_key, sessions, tokens, actions;
