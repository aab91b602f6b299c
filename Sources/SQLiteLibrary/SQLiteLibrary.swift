// SQLiteLibrary
