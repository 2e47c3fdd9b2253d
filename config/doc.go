// SPDX-License-Identifier: Apache-2.0

// Package config defines the settings of the plugin, the collector and the tool in one table, reads their values, and
// identifies the job from its environment.
//
// A setting KEY is the environment variable NCCL_OTF2_KEY, else the key of that name in the file that
// NCCL_OTF2_CONFIG names (YAML, TOML or JSON), else its default; viper has these layers. An empty variable counts as
// unset.
//
// The plugin's C code reads settings marked Early before a collector exists, and only from the environment.
// `nccl-otf2 run` copies them from the file to the job's environment, see Settings.Environment.
package config
