module handed

go 1.25
