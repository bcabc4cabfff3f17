DROP TABLE page_key;
