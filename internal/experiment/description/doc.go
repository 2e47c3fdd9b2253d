// SPDX-License-Identifier: Apache-2.0

// Package description defines what a shard says of its process: which locations, communicators, GPUs and regions has
// it, what was lost, and how did it end?
package description
