package scale

import (
	"os"
	"strconv"
	"testing"

	"github.com/nccl-otf2/nccl-otf2/scorep/jobtest"
)

func TestZZGen(t *testing.T) {
	dir := os.Getenv("GENDIR")
	n, _ := strconv.Atoi(os.Getenv("GENRANKS"))
	jobtest.WriteMarkedTraining(t, dir, n, n/2+3)
	jobtest.Unify(t, dir)
}
