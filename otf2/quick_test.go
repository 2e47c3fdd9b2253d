package otf2_test
import ("testing";"ncclotf2/otf2";"path/filepath")
func TestQuick(t *testing.T){
 m,_:=filepath.Glob("/work/shared/fixtures/otf2/*/*.otf2")
 for _,p:=range m {
  a,err:=otf2.Open(p,nil)
  if err!=nil {t.Error(p,err);continue}
  n:=0
  for e,err:=range a.Events(nil){ if err!=nil{t.Error(p,err);continue}; n++; _=e}
  var want uint64
  for _,l:=range a.Defs.Locations{want+=l.Events}
  t.Log(p,n,want,len(a.Defs.Order),a.Anchor.GlobalDefs, len(a.Defs.Other))
 }
}
