// StorageLMDB
