// SPDX-License-Identifier: Apache-2.0

// Package config holds the settings of the plugin, the collector and the tool: one table, where the values come
// from, and what the environment says of the job.
//
// A setting KEY is the environment variable NCCL_OTF2_KEY, else the key of that name in the file that
// NCCL_OTF2_CONFIG names (YAML, TOML or JSON), else its default; viper has these layers. An empty variable counts as
// unset.
//
// Settings marked Early are read by the plugin's C code before a collector exists, from the environment
// only. `nccl-otf2 run` brings them from the file into the job's environment, see Settings.Environment.
package config
