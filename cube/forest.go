// SPDX-License-Identifier: Apache-2.0

package cube

// forest is trees over the numbers 0 to n−1, with an order among roots and among children. No walk over it recurses:
// call trees can be deeper than a stack.
type forest struct {
	first    []int32 // children of i are children[first[i]:first[i+1]]; the roots are those of n
	children []int32
}

// newForest makes the forest of nodes with these parents (None for roots). Siblings stand as in order, which has each
// node once.
func newForest(parents, order []int32) *forest {
	n := len(parents)
	f := &forest{first: make([]int32, n+2), children: make([]int32, n)}
	slot := func(id int32) int32 {
		if parents[id] == None {
			return int32(n)
		}
		return parents[id]
	}
	for id := range parents {
		f.first[slot(int32(id))+1]++
	}
	for i := range n + 1 {
		f.first[i+1] += f.first[i]
	}
	next := append([]int32(nil), f.first...)
	for _, id := range order {
		s := slot(id)
		f.children[next[s]] = id
		next[s]++
	}
	return f
}

func (f *forest) roots() []int32 { return f.childrenOf(int32(len(f.children))) }

func (f *forest) childrenOf(id int32) []int32 { return f.children[f.first[id]:f.first[id+1]] }

// walk goes through the forest depth first. enter is given the depth, 0 for roots.
func (f *forest) walk(enter func(id int32, depth int), leave func(id int32)) {
	type level struct {
		id   int32
		rest []int32 // children still to come
	}
	for _, root := range f.roots() {
		stack := []level{{root, f.childrenOf(root)}}
		enter(root, 0)
		for len(stack) > 0 {
			top := &stack[len(stack)-1]
			if len(top.rest) == 0 {
				leave(top.id)
				stack = stack[:len(stack)-1]
				continue
			}
			child := top.rest[0]
			top.rest = top.rest[1:]
			enter(child, len(stack))
			stack = append(stack, level{child, f.childrenOf(child)})
		}
	}
}

// preorder is the order of rows of exclusive metrics: a node, then the tree below each of its children.
func (f *forest) preorder() []int32 {
	order := make([]int32, 0, len(f.children))
	f.walk(func(id int32, _ int) { order = append(order, id) }, func(int32) {})
	return order
}

// siblingsFirst is the order of rows of inclusive metrics: all children of a node side by side, then what is below the
// first child, below the second, and so on. It is not the order of a search by breadth.
func (f *forest) siblingsFirst() []int32 {
	order := make([]int32, 0, len(f.children))
	for _, root := range f.roots() {
		order = append(order, root)
		for stack := []int32{root}; len(stack) > 0; {
			children := f.childrenOf(stack[len(stack)-1])
			stack = stack[:len(stack)-1]
			order = append(order, children...)
			for i := len(children) - 1; i >= 0; i-- {
				stack = append(stack, children[i])
			}
		}
	}
	return order
}

// rowOrder gives the cnodes in the order of the rows of metrics of a kind. Ids play no part.
func (f *forest) rowOrder(kind MetricKind) []int32 {
	if kind == Exclusive {
		return f.preorder()
	}
	return f.siblingsFirst()
}
