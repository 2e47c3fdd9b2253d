// SPDX-License-Identifier: Apache-2.0

package otf2

// Four definitions still carry a field that later ones superseded. Writers fill it as libotf2 does, readers use
// it only in files from before the change (Region 1.1, Group 1.2, properties 2.0).

// legacyString is the string reference of a property whose value could only be a string.
func legacyString(typ Type, v Value) StringRef {
	if typ == TypeString {
		return StringRef(v)
	}
	return UndefinedString
}

// legacyGroup is a group's old type with what it stands for. MPI was the only paradigm with communicators.
var legacyGroup = [...]struct {
	typ      GroupType
	paradigm Paradigm
}{
	1: {GroupTypeLocations, ParadigmUnknown},
	2: {GroupTypeRegions, ParadigmUnknown},
	3: {GroupTypeMetric, ParadigmUnknown},
	4: {GroupTypeCommGroup, ParadigmMPI},
	5: {GroupTypeCommSelf, ParadigmMPI},
	6: {GroupTypeCommLocations, ParadigmMPI},
}

func legacyGroupType(typ GroupType, paradigm Paradigm, flags GroupFlag) uint8 {
	for old, g := range legacyGroup {
		if old > 0 && flags == 0 && g.typ == typ && g.paradigm == paradigm {
			return uint8(old)
		}
	}
	return 0
}

func typeOfLegacyGroup(old uint8) GroupType {
	if int(old) < len(legacyGroup) {
		return legacyGroup[old].typ
	}
	return GroupTypeUnknown
}

func paradigmOfLegacyGroup(old uint8) Paradigm {
	if int(old) < len(legacyGroup) {
		return legacyGroup[old].paradigm
	}
	return ParadigmUnknown
}

// legacyRegion is a region's old type with what it stands for; several old types differ in flags.
type legacyRegion struct {
	old      uint8
	paradigm Paradigm
	role     RegionRole
	flags    RegionFlag
}

// legacyRegions lists the old types that libotf2 writes; all other combinations are 0. For reading, the first
// line with an old type counts.
var legacyRegions = []legacyRegion{
	{1, ParadigmUnknown, RegionRoleFunction, 0},
	{1, ParadigmCompiler, RegionRoleFunction, 0},
	{1, ParadigmUser, RegionRoleCode, 0},
	{2, ParadigmUser, RegionRoleLoop, 0},
	{3, ParadigmUser, RegionRoleFunction, 0},
	{4, ParadigmUser, RegionRoleFileIO, 0},
	{5, ParadigmOpenMP, RegionRoleParallel, 0},
	{6, ParadigmOpenMP, RegionRoleLoop, 0},
	{7, ParadigmOpenMP, RegionRoleSections, 0},
	{8, ParadigmOpenMP, RegionRoleSection, 0},
	{9, ParadigmOpenMP, RegionRoleWorkshare, 0},
	{10, ParadigmOpenMP, RegionRoleSingle, 0},
	{11, ParadigmOpenMP, RegionRoleMaster, 0},
	{12, ParadigmOpenMP, RegionRoleCritical, 0},
	{13, ParadigmOpenMP, RegionRoleAtomic, 0},
	{14, ParadigmOpenMP, RegionRoleBarrier, 0},
	{15, ParadigmOpenMP, RegionRoleImplicitBarrier, 0},
	{16, ParadigmOpenMP, RegionRoleFlush, 0},
	{17, ParadigmOpenMP, RegionRoleCriticalSblock, 0},
	{18, ParadigmOpenMP, RegionRoleSingleSblock, 0},
	{19, ParadigmOpenMP, RegionRoleWrapper, 0},
	{20, ParadigmOpenMP, RegionRoleTask, 0},
	{21, ParadigmOpenMP, RegionRoleTaskWait, 0},
	{22, ParadigmMPI, RegionRoleBarrier, 0},
	{23, ParadigmMPI, RegionRoleCollOne2All, 0},
	{24, ParadigmMPI, RegionRoleCollAll2One, 0},
	{25, ParadigmMPI, RegionRoleCollAll2All, 0},
	{26, ParadigmMPI, RegionRoleCollOther, 0},
	{27, ParadigmUser, RegionRoleCode, RegionFlagPhase},
	{28, ParadigmUser, RegionRoleCode, RegionFlagDynamic},
	{29, ParadigmUser, RegionRoleCode, RegionFlagDynamic | RegionFlagPhase},
	{30, ParadigmUser, RegionRoleLoop, RegionFlagDynamic},
	{31, ParadigmUser, RegionRoleFunction, RegionFlagDynamic},
	{32, ParadigmUser, RegionRoleLoop, RegionFlagDynamic | RegionFlagPhase},
	{33, ParadigmOpenMP, RegionRoleTaskCreate, 0},
	{34, ParadigmOpenMP, RegionRoleOrdered, 0},
	{35, ParadigmOpenMP, RegionRoleOrderedSblock, 0},
}

func legacyRegionType(role RegionRole, paradigm Paradigm, flags RegionFlag) uint8 {
	if paradigm != ParadigmUser {
		flags = 0 // only user regions' types depend on them
	}
	for _, r := range legacyRegions {
		if r.paradigm == paradigm && r.role == role && r.flags == flags {
			return r.old
		}
	}
	return 0
}

func oldRegion(old uint8) legacyRegion {
	for _, r := range legacyRegions {
		if r.old == old {
			return r
		}
	}
	return legacyRegion{}
}

func roleOfLegacyRegion(old uint8) RegionRole   { return oldRegion(old).role }
func paradigmOfLegacyRegion(old uint8) Paradigm { return oldRegion(old).paradigm }
func flagsOfLegacyRegion(old uint8) RegionFlag  { return oldRegion(old).flags }
