package otf2print
import ("testing";"ncclotf2/otf2";"path/filepath";"bytes";"os";"os/exec";"time";"compress/gzip";"io";"strings")
func TestQuick(t *testing.T){
 m,_:=filepath.Glob("/work/shared/fixtures/otf2/*/*.otf2")
 for _,p:=range m {
  a,err:=otf2.Open(p,nil)
  if err!=nil {t.Error(p,err);continue}
  name:=filepath.Base(filepath.Dir(p))
  rd:=func(s string) []byte { b,err:=os.ReadFile(filepath.Dir(p)+"/"+name+s); if err==nil {return b}
   f,err:=os.Open(filepath.Dir(p)+"/"+name+s+".gz"); if err!=nil {t.Error(err);return nil}; z,_:=gzip.NewReader(f); b,_=io.ReadAll(z); return b}
  var d,e bytes.Buffer
  o:=&Options{Zone:time.UTC}
  d.WriteString(Title); Anchor(&d,a); d.WriteString(Title); Definitions(&d,a,o); d.WriteString(Title); LocalDefs(&d,a,o)
  e.WriteString(Title); Events(&e,a,o); if a.Anchor.Snapshots>0 {Snapshots(&e,a,o)}
  cmp:=func(s string, g []byte){ want:=rd(s); if !bytes.Equal(want,g) { os.WriteFile("/tmp/h1/got.txt",g,0644); os.WriteFile("/tmp/h1/want.txt",want,0644); out,_:=exec.Command("diff","/tmp/h1/want.txt","/tmp/h1/got.txt").Output(); s:=strings.Split(string(out),"\n"); t.Errorf("%s: %s", p, strings.Join(s[:min(12,len(s))],"\n")) } else {t.Log("same",p,s)}}
  cmp(".defs.txt",d.Bytes())
  if name=="v32-events" {cmp(".print-3.2.txt",e.Bytes())} else {cmp(".print.txt",e.Bytes())}
 }
}
