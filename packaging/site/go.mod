module github.com/nccl-otf2/nccl-otf2/packaging/site

go 1.26.8

require github.com/yuin/goldmark v1.8.7
